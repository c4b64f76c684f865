var list0 = "random_0.csv", list1 = "random_1.csv";

function pause(seconds) {
	new java.lang.ProcessBuilder("sleep", seconds).start().waitFor();
}

PreconditionLoad
	.config({
		"item": { "data": { "size": "10KB" }, "output": { "file": list0 } },
		"load": { "op": { "limit": { "count": COUNT_LIMIT } } }
	})
	.run();

pause(5);

UpdateLoad
	.config({
		"item": { "data": { "ranges": { "random": 5 } }, "input": { "file": list0 }, "output": { "file": list1 } },
		"load": { "step": { "id": STEP_ID_UPDATE } }
	})
	.run();

pause(5);

ReadVerifyLoad
	.config({
		"item": {
			"data": { "ranges": { "fixed": ["0-1", "3-7", "16-31", "64-127", "512-1KB", "2KB-4KB"] } },
			"input": { "file": list1 }
		},
		"load": { "step": { "id": STEP_ID_READ } }
	})
	.run();
