var common = {
	"item": { "data": { "size": "1KB" }, "output": { "path": "endurance_0" } },
	"load": { "step": { "id": "endurance_pipeline" } }
};
PipelineLoad
	.config(common)
	.append({ "load": { "op": { "type": "create" } } })
	.append({ "load": { "op": { "type": "update" } }, "item": { "data": { "ranges": { "random": 4 } } } })
	.append({ "load": { "op": { "type": "read" } }, "item": { "data": { "verify": true } } })
	.append({ "load": { "op": { "type": "delete" } } })
	.run();
