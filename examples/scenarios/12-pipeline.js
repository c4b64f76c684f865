// Write records, and read each 100 ms after its ack.
//
//   carronade scenario 12-pipeline.js
import { pipeline, check } from "carronade";

const both = await pipeline("kafka://127.0.0.1:9092/orders", { rate: "1k/s", for: "10s", "read-delay": "100ms" });

check(both, "failed=0", "end-to-end.p99<10s");
for (const stage of both.parts) console.log(stage.name, "has service p99", stage.service.p99_us, "us");
