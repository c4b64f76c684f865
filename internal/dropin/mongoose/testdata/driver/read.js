// Ten records, and then they are read again and again.
PreconditionLoad
	.config({
		"item": { "output": { "file": "read.csv", "path": "read" } },
		"load": { "op": { "limit": { "count": 10 } } }
	})
	.run();

ReadLoad
	.config({
		"item": { "input": { "file": "read.csv" } },
		"load": { "op": { "limit": { "count": 10 }, "recycle": true } }
	})
	.run();
