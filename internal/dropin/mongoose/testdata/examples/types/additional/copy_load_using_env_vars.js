CreateLoad
	.config({
		"item": {
			"input": { "file": ITEM_INPUT_FILE, "path": ITEM_INPUT_PATH },
			"output": { "path": ITEM_OUTPUT_PATH }
		}
	})
	.run();
