// The pipeline in the background, and single steps beside it.
var pipeline = PipelineLoad
	.config({
		"item": { "data": { "size": "1KB" }, "output": { "path": "endurance_0" } },
		"load": { "step": { "id": "endurance_pipeline" } }
	})
	.append({ "load": { "op": { "type": "create" } } })
	.append({ "load": { "op": { "type": "update" } }, "item": { "data": { "ranges": { "random": 4 } } } })
	.append({ "load": { "op": { "type": "read" } }, "item": { "data": { "verify": true } } })
	.append({ "load": { "op": { "type": "delete" } } })
	.start();

while (true) {
	Load
		.config({
			"item": { "data": { "size": "1KB" }, "output": { "path": "endurance_1" } },
			"load": { "step": { "limit": { "time": "5s" } } }
		})
		.run();
}
