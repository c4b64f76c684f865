// Each concurrency with each size: create, read, update, verify, delete.
concurrencies = [1, 10, 100];
var sizes = ["10KB", "1MB", "100MB", "10GB"];

function base(name, concurrency, size) {
	var id = name + "_" + concurrency + "x" + size;
	return {
		"item": { "data": { "size": size } },
		"load": { "step": { "id": id, "limit": { "time": "100s" } } },
		"storage": { "driver": { "limit": { "concurrency": concurrency } } }
	};
}

for (var i = 0; i < concurrencies.length; i++) {
	for (var j = 0; j < sizes.length; j++) {
		var c = concurrencies[i], s = sizes[j];
		var list = "items_" + c + "_" + s + ".csv";
		print("concurrency " + c + ", size " + s);
		PreconditionLoad
			.config(base("create", c, s))
			.config({
				"item": { "output": { "file": list } },
				"load": { "step": { "limit": { "count": 1000000 } } }
			})
			.run();
		ReadLoad.config(base("read", c, s)).config({ "item": { "input": { "file": list } } }).run();
		UpdateRandomRangeLoad.config(base("update", c, s)).config({ "item": { "input": { "file": list } } }).run();
		ReadVerifyLoad.config(base("verify", c, s)).config({ "item": { "input": { "file": list } } }).run();
		DeleteLoad.config(base("delete", c, s)).config({ "item": { "input": { "file": list } } }).run();
	}
}
