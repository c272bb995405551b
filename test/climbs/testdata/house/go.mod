module house

go 1.25
