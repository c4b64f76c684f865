var list0 = "single_fixed_0.csv", list1 = "single_fixed_1.csv";

PreconditionLoad
	.config({
		"item": { "data": { "size": "10KB" }, "output": { "file": list0 } },
		"load": { "op": { "limit": { "count": 1000 } } }
	})
	.run();

UpdateLoad
	.config({
		"item": { "data": { "ranges": { "fixed": "2KB-5KB" } }, "input": { "file": list0 }, "output": { "file": list1 } },
		"load": { "step": { "id": STEP_ID_UPDATE } }
	})
	.run();

ReadVerifyRandomRangeLoad
	.config({
		"item": { "input": { "file": list1 } },
		"load": { "step": { "id": STEP_ID_READ } }
	})
	.run();
