"""The shapes in which serving platforms write down what they were asked and what they answered."""

from collections.abc import Mapping
from typing import Any

PRESETS: Mapping[str, Mapping[str, str]] = {
    # CloudEvents in structured mode around the body; a member of the envelope names the service.
    "kserve-v1": {
        "stream": "inferenceservicename",
        "id": "id",
        "timestamp": "time",
        "posteriors": "data.predictions.*",
    },
    # A tensor has the values of all rows in one list.
    "kserve-v2": {
        "stream": "inferenceservicename",
        "id": "id",
        "timestamp": "time",
        "posteriors": "data.outputs.0.data|rows.*",
    },
    # The logger in mode `all`: requests, too, joined by `JOINS`.
    "kserve-v1-all": {
        "stream": "response.inferenceservicename",
        "id": "response.id",
        "timestamp": "response.time",
        "posteriors": "response.data.predictions.*",
        "features": "request.data.instances.*",
    },
    "kserve-v2-all": {
        "stream": "response.inferenceservicename",
        "id": "response.id",
        "timestamp": "response.time",
        "posteriors": "response.data.outputs.0.data|rows.*",
        "features": "request.data.inputs.0.data|rows.*",
    },
    # In binary mode the envelope stands in the record's headers, and the record is the body alone.
    "kserve-v1-binary": {"posteriors": "predictions.*"},
    "kserve-v2-binary": {"id": "id", "posteriors": "outputs.0.data|rows.*"},
    # Topics of models' outputs carry the answers of the second protocol; the name has a number of the deployment.
    "seldon-core-2": {"id": "id", "posteriors": "outputs.0.data|rows.*"},
    # Request and response as texts, here of CSV.
    "sagemaker": {
        "id": "eventMetadata.eventId",
        "timestamp": "eventMetadata.inferenceTime",
        "posteriors": "captureData.endpointOutput.data|csv.*",
        "features": "captureData.endpointInput.data|csv.*",
    },
    # Request and response as texts of JSON, the request as records by column.
    "databricks": {
        "id": "databricks_request_id",
        "timestamp": "timestamp_ms",
        "posteriors": "response|json.predictions.*",
        "features": "request|json.dataframe_records.*",
    },
    # The tables that came after them name the time differently.
    "databricks-gateway": {
        "id": "databricks_request_id",
        "timestamp": "request_time",
        "posteriors": "response|json.predictions.*",
        "features": "request|json.dataframe_records.*",
    },
    "mlflow": {"posteriors": "predictions.*"},
    # A line for each request, with the names that the service gave to what it logs.
    "bentoml": {"id": "request_id", "timestamp": "timestamp"},
    # Spans whose input and output are texts of JSON.
    "openinference": {
        "id": "context.span_id",
        "timestamp": "end_time",
        "posteriors": "attributes.output\\.value|json",
        "features": "attributes.input\\.value|json",
    },
}
"""Fields of `EventMapping` by preset."""

_OF_KSERVE: Mapping[str, Any] = {
    "id": ["inferenceservicename", "id"],
    "part": "type",
    "request": "org.kubeflow.serving.inference.request",
    "response": "org.kubeflow.serving.inference.response",
    "time": "time",
}
JOINS: Mapping[str, Mapping[str, Any]] = {"kserve-v1-all": _OF_KSERVE, "kserve-v2-all": _OF_KSERVE}
"""Settings of `JoinRule` by preset, of those that join."""
