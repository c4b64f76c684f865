PreconditionLoad
	.config({
		"item": { "data": { "size": ITEM_DATA_SIZE }, "output": { "file": ITEM_LIST_FILE_0 } },
		"load": { "op": { "limit": { "count": BASE_ITEMS_COUNT } } }
	})
	.run();

UpdateLoad
	.config({
		"item": {
			"data": { "ranges": { "fixed": "-" + ITEM_DATA_SIZE + "-" } },
			"input": { "file": ITEM_LIST_FILE_0 },
			"output": { "file": ITEM_LIST_FILE_1 }
		},
		"load": { "op": { "limit": { "count": BASE_ITEMS_COUNT * APPEND_COUNT }, "recycle": true } }
	})
	.run();
