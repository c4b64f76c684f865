var list0 = "single_random_0.csv", list1 = "single_random_1.csv";

PreconditionLoad
	.config({
		"item": { "data": { "size": "10KB" }, "output": { "file": list0 } },
		"load": { "op": { "limit": { "count": COUNT_LIMIT } } }
	})
	.run();

UpdateRandomRangeLoad
	.config({
		"item": { "input": { "file": list0 }, "output": { "file": list1 } },
		"load": { "step": { "id": STEP_ID_UPDATE } }
	})
	.run();

ReadVerifyLoad
	.config({
		"item": { "data": { "ranges": { "random": 12 } }, "input": { "file": list1 } },
		"load": { "step": { "id": STEP_ID_READ } }
	})
	.run();
