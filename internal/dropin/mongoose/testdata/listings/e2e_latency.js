var topic = "end_to_end"

var both = {
    "storage": {
        "driver": { "type": "kafka" }
    },
    "output": {
        "metrics": { "trace": { "persist": true } }
    },
    "load": {
        "op": { "limit": { "recycle": 1000 } }
    }
};

var writing = {
    "item" : { "type" : "data", "output" : { "path" : topic } },
    "load" : { "op" : { "limit" : { "count" : 1000000 } } }
};

var reading = {
    "item" : { "type" : "data", "input" : { "path" : topic } },
    "load" : { "op" : { "type" : "read", "limit" : { "count" : 1000000 }, "recycle" : true } }
};

PipelineLoad
	.config(both)
	.append(writing)
	.append(reading)
	.run()
