// Loads of random sizes without end: --for, --max-steps or Ctrl-C ends the scenario. With the same
// --seed the sizes are the same.
//
//   carronade scenario 10-endless.js --max-steps 4
import { run, sleep } from "carronade";

for (;;) {
  const size = 100 + Math.floor(Math.random() * 900);
  try {
    await run("kafka://127.0.0.1:9092/orders", { name: size + " bytes", size, rate: "1k/s", for: "5s" });
  } catch (error) {
    console.log("try again in 5 s:", error.message);
    await sleep("5s");
  }
}
