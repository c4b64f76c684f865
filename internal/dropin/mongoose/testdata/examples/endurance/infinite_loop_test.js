while (true) {
	Load
		.config({
			"item": { "data": { "size": "1KB" }, "output": { "path": "endurance_1" } },
			"load": { "step": { "limit": { "time": "5s" } } }
		})
		.run();
}
