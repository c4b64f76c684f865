// CONCURRENCY_LEVEL steps at the same time.
var steps = [];
var i;
try {
	for (i = 0; i < CONCURRENCY_LEVEL; i++) {
		steps[i] = Load
			.config({
				"item": { "type": "path", "input": { "path": ITEM_INPUT_PATH } },
				"load": { "op": { "type": "noop" }, "step": { "id": LOAD_STEP_ID + "_" + i } }
			})
			.start();
	}
	for (i = 0; i < CONCURRENCY_LEVEL; i++) {
		steps[i].await();
	}
} finally {
	for (i = 0; i < steps.length; i++) {
		steps[i].close();
	}
}
