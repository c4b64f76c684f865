PreconditionLoad
	.config({
		"item": { "output": { "file": FILE_NAME } },
		"load": { "op": { "limit": { "count": 1 } }, "step": { "node": { "addrs": null } } }
	})
	.run();

ReadLoad
	.config({
		"item": { "input": { "file": FILE_NAME } },
		"load": { "op": { "recycle": true }, "step": { "limit": { "time": "1m" } } }
	})
	.run();
