var withHeaders = {
    "storage" : {
        "driver" : {
            "create" : {
                "headers" : {
                    "header-name-0" : "header_value_0",
                    "header-name-1" : "header_value_1",
                    // and more
                    "header-name-N" : "header_value_N"
                }
            }
        }
    }
};
Load
    .config(withHeaders)
    .run();
