"""The same work on many things, on all processors."""
import concurrent.futures
import os


def each(work, things):
    """What `work` says of each thing, in their order. An interruption waits for what runs and begins nothing more."""
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        try:
            return list(pool.map(work, things))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
