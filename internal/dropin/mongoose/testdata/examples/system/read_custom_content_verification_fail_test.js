// The update writes no list, so the read compares with what is no longer there.
var list = "corrupt.csv";

PreconditionLoad
	.config({
		"item": { "output": { "file": list } },
		"load": { "op": { "limit": { "count": 10 } } }
	})
	.run();

UpdateLoad
	.config({
		"item": { "data": { "ranges": { "random": 4 } }, "input": { "file": list } }
	})
	.run();

ReadVerifyLoad
	.config({ "item": { "input": { "file": list } } })
	.run();
