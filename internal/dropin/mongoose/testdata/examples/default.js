// One step with the configuration of the command line.
Load.run()
