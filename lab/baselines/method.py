"""What all baselines have in common."""
import json
import random
import time


def timed(answer, case):
    begin = time.monotonic_ns()
    return answer(case), time.monotonic_ns() - begin


class Method:
    name = about = ""
    grid = ({},)
    defaults = (3.0, 3.0)  # thresholds of step and case scores where there is nothing to learn from
    own_class = False      # says which class; else the most usual of the lessons is said

    def fit(self, train, params, seed):
        """A function from a case to an Answer."""
        raise NotImplementedError

    def lessons(self, train, params, task):
        """Answers to the lessons themselves. Methods that learn from lessons must not be asked those that they learned from (`Learned`)."""
        ask = self.asker(train, params, task)
        return [ask(case)[0] for case, _ in train]

    def asker(self, train, params, task):
        """A function from a case to (its Answer, ns). What a method says that learns nothing is the same in every fold: it is asked once."""
        answer = self.fit([], params, task.seed)

        def ask(case):
            key = json.dumps([params, case.name])
            if key not in task.said:
                task.said[key] = timed(answer, case)
            return task.said[key]
        return ask


class Learned(Method):
    """A method that learns from lessons: asked about each after learning from the other parts."""
    parts = 3

    def asker(self, train, params, task):
        answer = self.fit(train, params, task.seed)
        return lambda case: timed(answer, case)

    def lessons(self, train, params, task):
        order = list(range(len(train)))
        random.Random(task.seed).shuffle(order)
        out = [None] * len(train)
        for part in range(self.parts):
            asked = order[part::self.parts]
            known = set(asked)
            answer = self.fit([lesson for i, lesson in enumerate(train) if i not in known], params, task.seed)
            for i in asked:
                out[i] = answer(train[i][0])
        return out
