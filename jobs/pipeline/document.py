"""forebay.yml as it is written: which keys there are and what they hold; refusals by line, and its JSON Schema.

It reads no file but the text it is given; where paths lead is for jobs.pipeline.config to say.
"""
from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Union

from pydantic import AfterValidator, BaseModel, ConfigDict, Discriminator, Field, Tag, ValidationError, model_validator

from jobs.pipeline import forms
from jobs.pipeline.forms import ColumnType, Length, Limit, Name, Scalar, Separator, String, problem
from jobs.pipeline.lines import Entry, at, key_of, refused, suggest, values
from jobs.pipeline.model import HOUR
from optimizer.errors import ForebayError
from optimizer.expression.types import TIMESTAMP, Type
from optimizer.time import DAY

BEHIND = ("how far before the newest row of any stream a row may be, as long as no boundary has begun; default: rows "
          "before a gap of more than 100,000 boundaries without rows go to quarantine")


class Keys(BaseModel):
    """A mapping of known keys; empty values count as not given."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _check_keys(cls, value: object) -> dict[str, Any]:
        fields = {field.alias or name: field for name, field in cls.model_fields.items()}
        required = [key for key, field in fields.items() if field.is_required()]
        for key in forms.mapping(value):
            if key not in fields:
                hint = suggest(key, fields)
                raise problem("unknown-key", "is not a key that is known here", hint, of=(key,), on="key")
        given = {key: inner for key, inner in forms.mapping(value).items() if inner is not None}
        for key in required:
            if key not in given:
                hint = f"required here: {', '.join(required)}"
                raise problem("missing-key", "is missing", hint, of=(key,), on="mapping")
        return given


class ColumnKeys(Keys):
    type: ColumnType
    sensitive: forms.Flag = Field(
        False, description="keeps the column's values out of the quarantine table and the data docs")


Column = Annotated[Union[Annotated[ColumnType, Tag("text form")], Annotated[ColumnKeys, Tag("mapping form")]],
                   Discriminator(forms.form)]


def _some_columns(columns: dict[str, Any]) -> dict[str, Any]:
    if not columns:
        raise problem("missing-key", "is empty", "declare at least one column, as `user: string`")
    return columns


Columns = Annotated[dict[forms.ColumnName, Column], forms.DISTINCT, AfterValidator(_some_columns)]


class KafkaKeys(Keys):
    """A topic whose messages are JSON objects."""

    servers: String
    topic: forms.Topic
    options: forms.Options = Field(
        default_factory=dict, description="the Kafka client's own, as security.protocol; $NAME is from the environment")


class RelationSource(Keys):
    """Where rows come from; exactly one of the places."""

    PLACES: ClassVar[tuple[str, ...]] = ("files", "json", "csv", "delta")

    files: String | None = Field(None, description="a pattern of files, read by their endings")
    json_files: String | None = Field(
        None, alias="json", description="a pattern of files of JSON lines, whatever their ending")
    csv: String | None = Field(None, description="a pattern of CSV files, whatever their ending")
    delta: String | None = Field(None, description="another program's Delta table")
    delimiter: Separator | None = Field(None, description="of CSV files; default ,")
    quote: Separator | None = Field(None, description='of CSV files; default "')
    null: Scalar | None = Field(None, description="what stands for NULL in CSV files")

    @property
    def places(self) -> dict[str, Any]:
        """What is given of PLACES, of which a valid source has one."""
        return self._given(self.PLACES)

    @property
    def options(self) -> dict[str, str]:
        """The options for CSV files."""
        return self._given(("delimiter", "quote", "null"))

    def _given(self, keys: Iterable[str]) -> dict[str, Any]:
        values = {key: getattr(self, "json_files" if key == "json" else key) for key in keys}
        return {key: value for key, value in values.items() if value is not None}

    @model_validator(mode="after")
    def _check_places(self) -> RelationSource:
        if len(self.places) != 1:
            names = " and ".join(self.places) or "no source"
            raise problem("bad-config", f"names {names}", f"name one of {', '.join(self.PLACES)}")
        kind, = self.places
        for key in self.options if kind in ("json", "delta") else ():
            raise problem("unknown-key", "is for CSV files only", f"leave it out with {kind}", of=(key,))
        if (self.delimiter or ",") == (self.quote or '"'):
            hint = "name another delimiter or quote"
            raise problem("bad-config", "has one character as delimiter and as quote", hint)
        return self


class StreamSource(RelationSource):
    """Where rows come from; exactly one of the places."""

    PLACES: ClassVar[tuple[str, ...]] = (*RelationSource.PLACES, "kafka")

    kafka: KafkaKeys | None = None
    changed_files: forms.ChangedFiles | None = Field(
        None, description="what becomes of a file whose content changed under its name: refuse, or add it whole once "
                          "more; default refuse")

    @model_validator(mode="after")
    def _check_changed_files(self) -> StreamSource:
        kind, = self.places
        if self.changed_files is not None and kind in ("delta", "kafka"):
            raise problem("unknown-key", "is for files only", f"leave it out with {kind}", of=("changed_files",))
        return self


class StreamKeys(Keys):
    """An event stream."""

    columns: Columns
    event_time: String = Field(description="the timestamp column that says when a row happened")
    wait: Length = Field(0, description="a boundary T waits until the stream has a row at or after T + wait")
    lateness: Length = Field(
        0, description="how much before the last boundary begun a row may be and still count; default 0")
    idle: Limit = Field(
        None, description="wall time after which a silent stream no longer holds boundaries up; default: never")
    ahead: Length = Field(HOUR, description="how far an event time may be ahead of the clock; default 1 hour")
    behind: forms.Reach | None = Field(None, description=BEHIND)
    keep: Limit = Field(None, description="how long rows and results stay; default: for ever")
    unknown_columns: forms.Policy = Field(
        "quarantine", description="what becomes of rows with columns that are not declared")
    source: StreamSource | None = Field(None, description="where rows come from; without it they are ingested by hand")

    @model_validator(mode="after")
    def _check_times(self) -> StreamKeys:
        types = column_types(self.columns)
        if self.event_time not in types:
            raise problem("bad-config", f"is {self.event_time!r}", suggest(self.event_time, types), of=("event_time",))
        if types[self.event_time] != TIMESTAMP:
            hint = f"declare `{self.event_time}: timestamp`, or name a column that is one"
            says = f"is {self.event_time}, which is {types[self.event_time]}"
            raise problem("bad-config", says, hint, of=("event_time",))
        if self.keep is not None and self.keep < self.lateness:
            hint = "rows must stay at least as long as late ones may come"
            raise problem("bad-config", "is shorter than lateness", hint, of=("keep",))
        return self


class RelationKeys(Keys):
    """A table that a boundary reads whole, versioned by its content."""

    columns: Columns
    source: RelationSource


class AssetKeys(Keys):
    asset: String = Field(description="the table, by path or URI, whose changes run the pipeline")


class SparkKeys(Keys):
    """Where tasks run."""

    master: String | None = Field(
        None, description="local[N], spark://HOST:PORT, yarn, k8s://URL; inline runs tasks in this process")
    remote: String | None = Field(None, description="a Spark Connect server, sc://HOST:PORT, instead of a master")
    settings: forms.Options = Field(default_factory=dict, description="Spark's own, and those of stores")
    when: forms.When | None = Field(
        None, description="auto: a command by hand does in its own process what takes less than Spark takes to start; "
                          "always: Spark; never: as master inline. Default: auto by hand, always in Airflow and Python")

    @model_validator(mode="after")
    def _check_place(self) -> SparkKeys:
        if self.master is not None and self.remote is not None:
            raise problem("bad-config", "has a master and a remote", "keep one", of=("remote",), subject="spark")
        return self


Schedule = Annotated[Union[Annotated[forms.Schedule, Tag("text form")],
                           Annotated[AssetKeys, Tag("mapping form")]], Discriminator(forms.form)]


class PipelineKeys(Keys):
    """forebay.yml: what a pipeline is."""

    name: Name
    warehouse: String | None = Field(
        None, description="where the tables are: a path relative to this file, or s3a://BUCKET/PATH; default warehouse")
    batch: forms.PositiveLength = Field(description="answers are due at every multiple of this in event time")
    streams: Annotated[dict[Name, StreamKeys], forms.DISTINCT]
    relations: Annotated[dict[Name, RelationKeys], forms.DISTINCT] = Field(default_factory=dict)
    schedule: Schedule | None = Field(
        None, description="continuous, five cron fields, or {asset: TABLE}; default: by hand")
    spark: SparkKeys | None = None
    latency: Limit = Field(
        None, description="the longest a boundary may take, or a batch of several; default: no limit for one, 10 "
        "seconds for several")
    decide: forms.Decide | None = Field(
        None, description="where plans and query groups are decided: in the task `adapt` of their own, or in batches; "
                          "default task with a schedule, else batch")
    cost_model: forms.CostModel = Field(
        "measured", description="what prices plans: seconds measured here, or the paper's equations; default measured")
    behind: forms.Reach | None = Field(None, description=f"of streams that say nothing else: {BEHIND}")
    keep_versions: forms.PositiveLength = Field(
        7 * DAY, description="how long an older version of a table of answers can be read; default 7 days")
    tracking: forms.Tracking | None = Field(
        None, description="MLflow: a server or database by URI, a folder, or off; default: a database in the warehouse")

    @model_validator(mode="after")
    def _check_names(self) -> PipelineKeys:
        if not self.streams:
            raise problem("missing-key", "is empty", "a pipeline has at least one stream", of=("streams",))
        streams = {name.lower() for name in self.streams}
        for name in self.relations:
            if name.lower() in streams:
                raise problem("bad-name", "names a stream and a relation", "give one of them another name",
                              of=("relations", name), subject=name)
        return self


def column_types(columns: Mapping[str, Type | ColumnKeys]) -> dict[str, Type]:
    return {name: column.type if isinstance(column, ColumnKeys) else column for name, column in columns.items()}


def sensitive(columns: Mapping[str, Type | ColumnKeys]) -> frozenset[str]:
    return frozenset(name for name, column in columns.items() if isinstance(column, ColumnKeys) and column.sensitive)


# Reading

def read(root: Entry) -> PipelineKeys:
    """The file's values; else all that is wrong, first unknown keys: a slip there causes others."""
    try:
        return PipelineKeys.model_validate(values(root))
    except ValidationError as error:
        refusals = [_refusal(root, details["loc"], details) for details in error.errors(include_url=False)]
        first, *more = sorted(refusals, key=lambda r: (r.code != "unknown-key", r.line or 0, r.column or 0))
        raise replace(first, hint="\n  ".join([*([first.hint] if first.hint else []), *_listed(more)])) from None


def _listed(refusals: Sequence[ForebayError]) -> list[str]:
    """What else is wrong, a line each."""
    lines = []
    for refusal in refusals:
        hint = f"; {refusal.hint}" if refusal.hint else ""
        lines.append(f"line {refusal.line}, column {refusal.column}: {refusal.message}{hint}")
    return [f"also wrong ({len(lines)}):", *lines] if lines else []


def _refusal(root: Entry, way: tuple[int | str, ...], details: Any) -> ForebayError:
    context = details.get("ctx", {})
    place = at(root, way)
    if "says" not in context:       # none that is known: each value above has a refusal of its own
        return refused(place, "bad-config", f"{place.where or 'the file'}: {details['msg']}")
    value = at(place, context["of"])
    where = ".".join(filter(None, (place.where, *context["of"]))) or "the file"
    spot = {"value": value, "mapping": place}.get(context["on"]) or key_of(place, context["of"][0])
    separator = "" if context["says"].startswith(":") else " "
    message = f"{context['subject'] or where}{separator}{context['says']}"
    return refused(spot, details["type"], message, context["hint"])


def json_schema() -> dict[str, Any]:
    """The form of forebay.yml for editors: docs/forebay.schema.json."""
    schema = PipelineKeys.model_json_schema()
    for keys in _objects(schema):
        if "patternProperties" in keys:
            keys["additionalProperties"] = False
        if isinstance(keys.get("title"), str):      # only the key once more
            del keys["title"]
        if keys.keys() & {"type", "anyOf", "$ref"}:     # in microseconds; descriptions say it as it is written
            keys.pop("default", None)
        for name in keys.get("properties", {}).keys() - set(keys.get("required", ())):
            keys["properties"][name] = _or_empty(keys["properties"][name])
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "forebay.yml", **schema}


def _or_empty(form: dict[str, Any]) -> dict[str, Any]:
    """Of a key that may be left out: without a value it counts as left out."""
    if {"type": "null"} in form.get("anyOf", ()):
        return form
    about = {"description": form["description"]} if "description" in form else {}
    return {**about, "anyOf": [{key: value for key, value in form.items() if key != "description"}, {"type": "null"}]}


def _objects(value: object) -> Iterable[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _objects(inner)
