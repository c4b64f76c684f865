// A steady load in the background, while bursts come and go.
//
//   carronade scenario 07-background.js
import { run, sleep } from "carronade";

const background = run("kafka://127.0.0.1:9092/orders", { name: "background", rate: "500/s" });

for (let burst = 1; burst <= 3; burst++) {
  await sleep("2s");
  await run("kafka://127.0.0.1:9092/events", { name: "burst " + burst, rate: "5k/s", for: "5s" });
}
background.stop();

const report = await background;
console.log("the background load had p99", report.response.p99_us, "us");
