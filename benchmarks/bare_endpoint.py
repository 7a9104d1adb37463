"""What one writes in ten minutes: scikit-learn's predict behind FastAPI. `benchmarks/service.py` measures beside it."""

import io
import os
from typing import Any

import joblib
import pandas as pd
import pyarrow as pa
from fastapi import FastAPI, Request, Response

model = joblib.load(os.environ["BARE_MODEL"])
app = FastAPI()


@app.post("/json")
async def of_json(request: Request) -> dict[str, Any]:
    rows = (await request.json())["rows"]
    return {"predictions": model.predict(pd.DataFrame(rows)).tolist()}


@app.post("/arrow")
async def of_arrow(request: Request) -> Response:
    rows = pa.ipc.open_stream(await request.body()).read_all().to_pandas()
    answer = pa.table({"prediction": model.predict(rows)})
    content = io.BytesIO()
    with pa.ipc.new_stream(content, answer.schema) as stream:
        stream.write_table(answer)
    return Response(content.getvalue(), media_type="application/vnd.apache.arrow.stream")
