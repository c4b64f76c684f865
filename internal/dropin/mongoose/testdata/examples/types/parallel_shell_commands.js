// Two commands at the same time, and what they print.
commands = ["echo one; echo two", "echo three; echo four 1>&2"];
running = [];

for (n = 0; n < commands.length; n++) {
	running[n] = new java.lang.ProcessBuilder("sh", "-c", commands[n]).start();
}

function show(stream) {
	reader = new java.io.BufferedReader(new java.io.InputStreamReader(stream));
	while ((line = reader.readLine()) != null) {
		print(line);
	}
	reader.close();
}

for (n = 0; n < running.length; n++) {
	show(running[n].getInputStream());
	show(running[n].getErrorStream());
	running[n].waitFor();
}
