module david

go 1.25.0
