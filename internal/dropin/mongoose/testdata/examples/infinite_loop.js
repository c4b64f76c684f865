// A step of a second, without end.
while (true) {
	Load.config({ "load": { "step": { "limit": { "time": "1s" } } } }).run();
}
