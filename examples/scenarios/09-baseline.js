// Fail if the throughput is below 80 % of a stored report.
//
//   carronade scenario 09-baseline.js last
import { run, report, args } from "carronade";

const before = report(args[0] ?? "last");
const now = await run("kafka://127.0.0.1:9092/orders", { count: 100_000 });

const share = now.totals.events_per_s / before.totals.events_per_s;
console.log(`${Math.round(100 * share)} % of report ${before.id}`);
if (share < 0.8) throw new Error("slower than report " + before.id);
