PreconditionLoad
	.config({
		"item": { "output": { "path": ITEM_SRC_PATH } },
		"load": {
			"op": { "limit": { "count": 100000 } },
			"step": { "limit": { "size": "1GB", "time": 30 } }
		}
	})
	.run();

Load
	.config({ "item": { "input": { "path": ITEM_SRC_PATH } } })
	.config({
		"item": { "output": { "path": ITEM_DST_PATH } },
		"load": { "step": { "limit": { "time": 60 } } }
	})
	.run();
