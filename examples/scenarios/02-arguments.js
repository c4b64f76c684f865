// The target, the rate and the sizes come from the command line and the environment.
//
//   SIZES=100,1KiB carronade scenario 02-arguments.js kafka://127.0.0.1:9092/orders 5k/s
import { run, args, env } from "carronade";

const [target, rate = "1k/s"] = args;
if (!target) throw new Error("give a target, and perhaps a rate");

for (const size of (env.SIZES ?? "100").split(",")) {
  await run(target, { name: "size " + size, rate, size, for: "10s" });
}
