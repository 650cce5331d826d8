"""The truth about a case, as its injector knows it."""
import os


def label_of(stack, fault, seed, params, intervals, host, **more):
    """What all cases' labels have in common. `intervals`: when the fault, or what explains slowness, was there; `more` overrides."""
    is_fault = fault.culprit is not None
    begin = min((i[0] for i in intervals), default=None)
    end = max((i[1] for i in intervals), default=None)
    return {
        "is_fault": is_fault, "fault_class": fault.fault_class, "accept_classes": list(fault.accept), "fault_kind": fault.kind,
        "t_start_ns": begin, "t_end_ns": end, "stack": stack.name, "version": stack.version,
        "world_size": 1, "culprit": fault.culprit, "accept_ranks": None, "victims": [], "abnormal_steps": None, "ignore_steps": [],
        "observer_ns": [], "what_to_expect": fault.about, "intervals_ns": intervals if is_fault else [],
        "explained_slow_ns": intervals if intervals and not is_fault else None, "activations": len(intervals) if is_fault else 0,
        "seed": seed, "params": params, "accept_operators": list(fault.operators), "processes": {}, "visible_in": list(fault.visible),
        "background": {"whole_case": host.other_work(), "in_window": host.other_work(begin, end) if begin else None,
                       "cores": len(os.sched_getaffinity(0))},
        **more,
    }
