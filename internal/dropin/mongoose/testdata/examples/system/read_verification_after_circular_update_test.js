var list0 = "circular_0.csv", list1 = "circular_1.csv";

PreconditionLoad
	.config({
		"item": { "data": { "size": "10KB" }, "output": { "file": list0 } },
		"load": { "op": { "limit": { "count": 1000 } }, "step": { "id": STEP_ID_CREATE } }
	})
	.run();

UpdateLoad
	.config({
		"item": { "data": { "ranges": { "random": 10 } }, "input": { "file": list0 }, "output": { "file": list1 } },
		"load": { "op": { "limit": { "count": 10000 }, "recycle": true }, "step": { "id": STEP_ID_UPDATE } }
	})
	.run();

ReadVerifyLoad
	.config({
		"item": { "input": { "file": list1 } },
		"load": { "step": { "id": STEP_ID_READ } }
	})
	.run();
