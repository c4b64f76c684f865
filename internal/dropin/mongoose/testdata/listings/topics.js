function fill(topic) {
	PreconditionLoad
		.config({
			"item" : { "type" : "data", "output" : { "path" : topic } },
			"load" : { "op" : { "limit" : { "count" : 5 } } }
		})
		.run();
}

fill("topic1");
fill("topic2");

var list = "topic_list.csv"

ReadLoad
	.config({
		"item" : { "type" : "path", "input" : { "file" : list } },
		"load" : { "op" : { "limit" : { "count" : 2 }, "recycle" : true } }
	})
	.run();
