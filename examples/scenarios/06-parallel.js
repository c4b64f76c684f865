// Load three systems at the same time.
//
//   carronade scenario 06-parallel.js
import { run, parallel, check } from "carronade";

const load = { rate: "500/s", for: "10s" };

const [orders, metrics, traces] = await parallel(
  run("kafka://127.0.0.1:9092/orders", { ...load, name: "orders" }),
  run("riemann://127.0.0.1:5555", { ...load, name: "metrics" }),
  run("apm+http://127.0.0.1:8200", { ...load, name: "traces" }),
);
for (const each of [orders, metrics, traces]) check(each, "failed=0");
