"""What all baselines have in common."""
import random


class Method:
    name = about = ""
    grid = ({},)
    defaults = (3.0, 3.0)  # thresholds of step and case scores where there is nothing to learn from
    own_class = False      # says which class; else the most usual of the lessons is said

    def fit(self, train, params, seed):
        """A function from a case to an Answer."""
        raise NotImplementedError

    def lessons(self, train, params, seed):
        """Answers to the lessons themselves. Methods that learn from lessons must not be asked those that they learned from (`Learned`)."""
        answer = self.fit([], params, seed)
        return [answer(case) for case, _ in train]


class Learned(Method):
    """A method that learns from lessons: asked about each after learning from the other parts."""
    parts = 3

    def lessons(self, train, params, seed):
        order = list(range(len(train)))
        random.Random(seed).shuffle(order)
        out = [None] * len(train)
        for part in range(self.parts):
            asked = order[part::self.parts]
            known = set(asked)
            answer = self.fit([lesson for i, lesson in enumerate(train) if i not in known], params, seed)
            for i in asked:
                out[i] = answer(train[i][0])
        return out
