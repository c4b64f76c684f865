PreconditionLoad
	.config({
		"item": {
			"data": { "size": ITEM_DATA_SIZE },
			"naming": { "length": 16, "radix": 16 },
			"output": { "file": ITEM_LIST_FILE, "path": ITEM_OUTPUT_PATH + "/${path:random(16, 2)" }
		},
		"load": { "op": { "limit": { "count": STEP_LIMIT_COUNT } } }
	})
	.run();

ReadVerifyLoad
	.config({ "item": { "input": { "file": ITEM_LIST_FILE } } })
	.run();
