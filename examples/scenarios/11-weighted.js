// Write 20 % and read 80 % at once, after a topic was filled. Marks say in the report what happened.
//
//   carronade scenario 11-weighted.js
import { run, weighted, mark, check } from "carronade";

const target = "kafka://127.0.0.1:9092/orders";

await run(target, { name: "fill", count: 100_000 });
mark("the topic has its records");

const both = await weighted(
  [{ name: "write", weight: 20 }, { name: "read", op: "read", weight: 80 }],
  { target, name: "both", rate: "1k/s", for: "10s" },
);
check(both, "failed=0");
for (const part of both.parts) {
  console.log(part.name, Math.round(100 * part.got), "%, p99", part.response.p99_us, "us");
}
