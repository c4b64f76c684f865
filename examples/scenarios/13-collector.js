// Raise the rate until a Collector has not exported a hundredth of what it acked.
//
//   carronade scenario 13-collector.js
//   carronade scenario 13-collector.js otlp+http://127.0.0.1:4318 http://127.0.0.1:4318/metrics
import { run, args } from "carronade";

const [target = "otlp+grpc://127.0.0.1:4317", metrics = "http://127.0.0.1:8888/metrics"] = args;

for (let rate = 10_000; rate <= 80_000; rate *= 2) {
  const step = await run(target, { name: rate + "/s", signal: "logs", rate, for: "10s", "system-metrics": metrics });
  const exported = step.gauges.find((g) => g.name === "exported, of acked")?.after ?? 0;
  console.log(`${rate}/s: ${exported.toFixed(1)}% exported`);
  if (exported < 99 || step.totals.failed > 0) break;
}
