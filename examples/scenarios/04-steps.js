// Raise the rate until a limit does not hold, and say which rate was the last to hold.
//
//   carronade scenario 04-steps.js
import { run } from "carronade";

const target = "riemann://127.0.0.1:5555";
const limit = 50_000; // microseconds

let last = 0;
for (let rate = 1000; rate <= 8000; rate *= 2) {
  const step = await run(target, { name: rate + "/s", rate, for: "10s" });
  if (step.response.p99_us > limit || step.totals.failed > 0) break;
  last = rate;
}
console.log(last > 0 ? `the limits hold at ${last}/s` : "the limits hold at no rate");
