// Compare two settings in turns, so that a drift of the machine affects both.
//
//   carronade scenario 05-settings.js
import { run } from "carronade";

const load = { rate: "5k/s", for: "10s", size: 1000 };
const p99 = { 1: [], all: [] };

for (let turn = 1; turn <= 3; turn++) {
  for (const acks of turn % 2 ? ["1", "all"] : ["all", "1"]) {
    const step = await run("kafka://127.0.0.1:9092/orders", { ...load, name: `acks ${acks}, turn ${turn}`, acks, label: { acks } });
    p99[acks].push(step.response.p99_us);
  }
}
for (const acks in p99) {
  console.log("acks", acks, "median p99", p99[acks].sort((a, b) => a - b)[1], "us");
}
