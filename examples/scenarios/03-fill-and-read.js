// Fill a topic, and read it to its end.
//
//   carronade scenario 03-fill-and-read.js
import { run, check } from "carronade";

const topic = "kafka://127.0.0.1:9092/orders";

const fill = await run(topic, { name: "fill", count: 100_000, size: 512 });
const read = await run(topic, { name: "read", op: "consume", from: "earliest", "until-end": true });

check(fill, "failed=0");
if (read.totals.consumed < fill.totals.acked) {
  throw new Error(`${fill.totals.acked} events were acked, and only ${read.totals.consumed} were read`);
}
