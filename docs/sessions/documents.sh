# A folder of documents, indexed and asked.
#@ mkdir -p handbook/hr
#@ printf '# Leave\n\nEverybody has ten days of leave every year. Hand the form in a week before.\n\n## Sick leave\n\nTell your lead on the first morning.\n' > handbook/leave.md
#@ printf '# 有給休暇\n\n有給休暇は年に十日です。申請書は前の週までに出してください。\n' > handbook/kyuka.md
#@ printf 'name,phone\nAnn,12\nBob,13\n' > handbook/phones.csv
#@ printf 'Salaries are looked at in May.\n' > handbook/hr/pay.txt
#@ printf 'hr/**: [group:hr]\n' > handbook/.taiwa-access.yaml
#@ printf 'not really' > handbook/scan.pdf
#== index
taiwa index handbook
#== find
taiwa find "whom do I tell when I am sick" -k 1
taiwa find 休暇の申請
taiwa find salaries
taiwa find salaries --as group:hr
#== list
taiwa index list
