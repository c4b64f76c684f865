CreateLoad
	.config({
		"item": { "output": { "file": ITEMS_FILE_0 } },
		"test": { "step": { "limit": { "count": FIRST_STEP_COUNT_LIMIT } } }
	})
	.run();

UpdateLoad
	.config({
		"item": {
			"data": { "ranges": { "fixed": "0-100" } },
			"input": { "file": ITEMS_FILE_0 },
			"output": { "file": ITEMS_FILE_1 }
		}
	})
	.run();

UpdateRandomRangeLoad
	.config({ "item": { "input": { "file": ITEMS_FILE_0 }, "output": { "file": ITEMS_FILE_1 } } })
	.run();

ReadRandomRangeLoad
	.config({ "item": { "input": { "file": ITEMS_FILE_1 } } })
	.run();

ReadVerifyRandomRangeLoad
	.config({ "item": { "input": { "file": ITEMS_FILE_1 } } })
	.run();
