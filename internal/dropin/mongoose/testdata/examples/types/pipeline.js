PipelineLoad
	.config({
		"load": { "step": { "limit": { "time": "5m" } } }
	})
	.append({ "load": { "op": { "type": "create" } } })
	.append({ "load": { "op": { "type": "read" } } })
	.append({ "item": { "output": { "file": "pipeline_items.csv" } }, "load": { "op": { "type": "delete" } } })
	.run();
