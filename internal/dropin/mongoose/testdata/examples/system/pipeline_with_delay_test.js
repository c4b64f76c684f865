var shared = { "item": { "data": { "size": "1KB" } } };

PipelineLoad
	.config(shared)
	.append({
		"item": { "output": { "delay": "20s", "path": "delayed" } },
		"load": { "op": { "limit": { "count": 100 } } },
		"storage": { "net": { "node": { "addrs": ZONE1_ADDRS } } }
	})
	.append({
		"load": { "op": { "type": "read" } },
		"storage": { "net": { "node": { "addrs": ZONE2_ADDRS } } }
	})
	.run();
