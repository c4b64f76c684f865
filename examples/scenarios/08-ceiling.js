// Search the ceiling, and then stay at 80 % of it.
//
//   carronade scenario 08-ceiling.js
import { find, run, check } from "carronade";

const target = "riemann://127.0.0.1:5555";

const ceiling = await find(target, { slo: "p99<50ms", budget: "5m", precision: "10%" });
if (ceiling.holds > 0) {
  const calm = await run(target, { name: "at 80 %", rate: 0.8 * ceiling.holds, for: "30s" });
  check(calm, "p99<50ms");
} else {
  console.log("no rate is known to hold:", ceiling.why);
}
