var list = "weighted_items.csv";

PreconditionLoad
	.config({
		"item": { "data": { "size": "10KB" }, "output": { "file": list, "path": ITEM_OUTPUT_PATH } },
		"load": { "op": { "limit": { "count": 10000 } } }
	})
	.run();

WeightedLoad
	.config({
		"item": { "data": { "size": "10KB" } },
		"load": { "step": { "limit": { "time": "50s" } } }
	})
	.append({
		"item": { "output": { "path": ITEM_OUTPUT_PATH } },
		"load": { "op": { "type": "create", "weight": 20 } }
	})
	.append({
		"item": { "input": { "file": list } },
		"load": { "op": { "recycle": true, "type": "read", "weight": 80 } }
	})
	.run();
