var list0 = "fixed_0.csv", list1 = "fixed_1.csv";

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
		"item": {
			"data": { "ranges": { "fixed": ["0-15", "32-63", "128-255", "512-1KB", "2KB-4KB"] } },
			"input": { "file": list0 },
			"output": { "file": list1 }
		},
		"load": { "step": { "id": STEP_ID_UPDATE } }
	})
	.run();

pause(5);

ReadVerifyLoad
	.config({
		"item": { "data": { "ranges": { "fixed": "256-" } }, "input": { "file": list1 } },
		"load": { "step": { "id": STEP_ID_READ } }
	})
	.run();
