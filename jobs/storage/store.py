"""How a store on S3 is reached: Hadoop's settings and AWS's variables as delta-rs, Arrow and DuckDB want them, with
patience for seconds.

Nothing here knows tables. DuckDB reads through Arrow, since its own extension for S3 would have to be downloaded.
"""
from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from optimizer.errors import ForebayError, failed, first_line

Settings = tuple[tuple[str, str], ...]      # Hadoop's names without `fs.s3a.`, sorted: a key of caches
SCHEMES = ("s3a", "s3", "s3n")
# bytes up to which a file is fetched by one request, and not by parts as it is read
WHOLE = 4 << 20
CONNECT, REQUEST, RETRIES = 3, 30, 2        # seconds, seconds, times
ENVIRONMENT = {
    "access.key": "AWS_ACCESS_KEY_ID",
    "secret.key": "AWS_SECRET_ACCESS_KEY",
    "session.token": "AWS_SESSION_TOKEN",
    "endpoint.region": "AWS_REGION",
    "endpoint": "AWS_ENDPOINT_URL"
}
_SIGNS = {
    "no-bucket": ("NoSuchBucket", "NO_SUCH_BUCKET", "bucket does not exist"),
    "no-access": ("AccessDenied", "ACCESS_DENIED", "InvalidAccessKeyId", "INVALID_ACCESS_KEY_ID",
                  "SignatureDoesNotMatch", "SIGNATURE_DOES_NOT_MATCH", "403 Forbidden", "InvalidToken", "ExpiredToken",
                  "status code 401", "HTTP status 403", "HTTP response code: 403"),
    "no-store": ("error sending request", "NETWORK_CONNECTION", "curlCode", "connect error", "timed out", "dns error",
                 "169.254.169.254"),
}
_HINTS = {
    "no-bucket": "make the bucket, or correct `warehouse` in forebay.yml",
    "no-access": "set spark.hadoop.fs.s3a.access.key and .secret.key under `spark: settings` in forebay.yml, or "
                 "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    "no-store": "see that the endpoint answers and that spark.hadoop.fs.s3a.endpoint under `spark: settings` in "
                "forebay.yml (or AWS_ENDPOINT_URL) names it",
}
_MESSAGES = {
    "no-bucket": "its bucket does not exist",
    "no-access": "its store refuses these credentials",
    "no-store": "its store cannot be reached"
}


def settings(uri: str, given: Mapping[str, str]) -> Settings:
    """What concerns the URI's bucket: `fs.s3a.bucket.NAME.…` before `fs.s3a.…` before AWS's variables, taken now, so
    that tasks need not have them.
    """
    scheme, _, rest = uri.partition("://")
    bucket = rest.split("/")[0]
    if scheme not in SCHEMES or not bucket:
        raise ForebayError("bad-config", f"warehouse {uri} is neither a local path nor a bucket on S3",
                           hint="write a local path, or s3a://BUCKET/PATH")
    without_hadoop = {key.removeprefix("spark.hadoop."): value for key, value in given.items()}
    s3a = {key.removeprefix("fs.s3a."): value for key, value in without_hadoop.items() if key.startswith("fs.s3a.")}
    bucket_prefix = f"bucket.{bucket}."
    of_all = {key: value for key, value in s3a.items() if not key.startswith("bucket.")}
    of_bucket = {key.removeprefix(bucket_prefix): value for key, value in s3a.items() if key.startswith(bucket_prefix)}
    configured = of_all | of_bucket
    environment = {key: os.environ[name] for key, name in ENVIRONMENT.items() if os.environ.get(name)}
    if "access.key" in configured:      # credentials are one thing: never half from here, half from there
        for key in ("access.key", "secret.key", "session.token"):
            environment.pop(key, None)
    environment.setdefault("endpoint.region", os.environ.get("AWS_DEFAULT_REGION") or "us-east-1")
    return tuple(sorted({**environment, **configured}.items()))


def _endpoint(configured: Mapping[str, str]) -> str:
    """With its scheme; empty for Amazon's."""
    endpoint = configured.get("endpoint", "")
    if not endpoint or "://" in endpoint:
        return endpoint
    plain = configured.get("connection.ssl.enabled", "true").lower() == "false"
    return f"{'http' if plain else 'https'}://{endpoint}"


def _is_anonymous(configured: Mapping[str, str]) -> bool:
    return "Anonymous" in configured.get("aws.credentials.provider", "")


def _has_path_style(configured: Mapping[str, str]) -> bool:
    """Whether the bucket is named in the path of a request, not in its host; as other stores than Amazon's expect."""
    return configured.get("path.style.access", "true").lower() == "true"


@lru_cache(maxsize=64)
def _options(settings: Settings) -> dict[str, str]:
    configured = dict(settings)
    endpoint = _endpoint(configured)
    options = {name: configured[key] for key, name in ENVIRONMENT.items() if key in configured and key != "endpoint"}
    # The commit of a Delta version is put-if-absent: the store itself decides between two runners, and no lock table is
    # needed.
    options |= {
        "aws_conditional_put": "etag",
        "connect_timeout": f"{CONNECT}s",
        "timeout": f"{REQUEST}s",
        "max_retries": str(RETRIES),
        "retry_timeout": "10s"
    }
    if endpoint:
        options["AWS_ENDPOINT_URL"] = endpoint
        options["AWS_ALLOW_HTTP"] = "true" if endpoint.startswith("http:") else "false"
    if endpoint or "path.style.access" in configured:
        options["AWS_VIRTUAL_HOSTED_STYLE_REQUEST"] = "false" if _has_path_style(configured) else "true"
    if _is_anonymous(configured):
        options["AWS_SKIP_SIGNATURE"] = "true"
    return options


def options(key: Settings) -> dict[str, str]:
    """delta-rs's."""
    return dict(_options(key))


@lru_cache(maxsize=64)
def _filesystem(key: Settings, process: int) -> Any:
    from pyarrow import fs  # hundredths of a second that local warehouses need not pay

    configured = dict(key)
    endpoint = _endpoint(configured)
    scheme, _, host = endpoint.partition("://")
    keys = {
        "access_key": configured.get("access.key"),
        "secret_key": configured.get("secret.key"),
        "session_token": configured.get("session.token")
    }
    credentials = {"anonymous": True} if _is_anonymous(configured) else keys
    return fs.S3FileSystem(
        **credentials, region=configured["endpoint.region"], endpoint_override=host or None, scheme=scheme or "https",
        connect_timeout=CONNECT, request_timeout=REQUEST,
        retry_strategy=fs.AwsStandardS3RetryStrategy(max_attempts=RETRIES + 1), allow_delayed_open=True,
        force_virtual_addressing=bool(endpoint) and not _has_path_style(configured))


def filesystem(key: Settings) -> Any:
    """Arrow's; one a process, since its threads do not survive a fork."""
    return _filesystem(key, os.getpid())


def whole(key: Settings, path: str) -> bytes:
    with filesystem(key).open_input_stream(path) as file:
        return bytes(file.read())


def send(key: Settings, local: str, path: str) -> None:
    with open(local, "rb") as file, filesystem(key).open_output_stream(path) as out:
        shutil.copyfileobj(file, out, 8 << 20)


def under(key: Settings, path: str, deep: bool) -> list[Any]:
    """What is in a folder, without the objects of no length that some programs put there in place of the folder."""
    from pyarrow import fs

    entries = filesystem(key).get_file_info(fs.FileSelector(path, recursive=deep, allow_not_found=True))
    return [entry for entry in entries if entry.base_name and entry.path.rstrip("/") != path]


def protocol(key: Settings) -> str:
    """A name of these settings, so that one engine reads stores of different ones."""
    return f"forebay{hashlib.blake2b(repr(key).encode(), digest_size=8).hexdigest()}"


@contextmanager
def reached(uri: str) -> Iterator[None]:
    """What is done in it needs the store: its errors say what to mend."""
    try:
        yield
    except FileNotFoundError as error:
        raise explained(uri, error) or error
    except OSError as error:
        raise explained(uri, error) or failed("no-store", f"{uri}: {first_line(error)[:300]}",
                                              _HINTS["no-store"]) from error


def explained(uri: str, error: BaseException) -> ForebayError | None:
    """The error as a person needs it, None where the store is not at fault."""
    text = str(error)
    for code, signs in _SIGNS.items():
        if any(sign in text for sign in signs):
            return ForebayError(code, f"{uri} cannot be used: {_MESSAGES[code]}", hint=_HINTS[code],
                                exit_code=1 if code == "no-store" else 2)
    return None
