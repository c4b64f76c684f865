var list = "weighted.csv";

PreconditionLoad
	.config({
		"item": { "output": { "file": list } },
		"load": { "step": { "limit": { "count": 10000 } } }
	})
	.run();

WeightedLoad
	.config({ "load": { "step": { "limit": { "time": "100s" } } } })
	.append({ "load": { "op": { "weight": 20 }, "type": "create" } })
	.append({
		"item": { "input": { "file": list } },
		"load": { "op": { "recycle": { "enabled": true }, "weight": 80 }, "type": "read" }
	})
	.run();
