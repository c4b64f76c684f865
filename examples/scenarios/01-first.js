// One run, and a limit on its result.
//
//   carronade scenario 01-first.js
import { run, check } from "carronade";

const fill = await run("kafka://127.0.0.1:9092/orders", { rate: "5k/s", for: "30s" });

check(fill, "p99<50ms", "failure-rate<0.1%");
console.log("acked", fill.totals.acked, "events at", Math.round(fill.totals.events_per_s), "a second");
