Load
	.config({
		"item": {
			"data": { "ranges": { "threshold": PART_SIZE } },
			"output": { "file": ITEM_OUTPUT_FILE }
		},
		"load": { "batch": { "size": 1 }, "step": { "limit": { "size": SIZE_LIMIT } } }
	})
	.run();
