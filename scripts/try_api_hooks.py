"""What `scripts/try_api.py` does with requests before they are sent."""

import schemathesis

# In milliseconds.
LONGEST_WAIT = 5
MAX_TIME = 366 * 86_400_000


def written(value):
    """A whole number without a decimal point, as programs write it: JSON Schema takes `5.0` for one, the server doesn't."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {name: written(part) for name, part in value.items()}
    if isinstance(value, list):
        return [written(part) for part in value]
    return value


def shortened(body):
    """A wait that is taken becomes a short one, since a request that is held shows nothing more; one that is refused stays."""
    wait = body.get("wait")
    if isinstance(wait, int) and not isinstance(wait, bool) and LONGEST_WAIT < wait <= MAX_TIME:
        return {**body, "wait": LONGEST_WAIT}
    return body


@schemathesis.hook
def map_body(context, body):
    body = written(body)
    return shortened(body) if isinstance(body, dict) else body
