module nfmeta.example/go

go 1.19
